# shellcheck shell=sh
# shellcheck disable=SC2154 # variables of scaling.sh, which sources this
# page.sh: the page of the scaling study on standard output: sentences, and the tables of `sparsetrain study`, which has
# all that is computed or decided. pictures: the folder of the figures from the page, with /.

# facts KEY: a number or a list for a sentence, out of what `study facts` has put into $scratch/facts
facts() { "$program" rows "$scratch/facts" --keys "$1"; }

# dense_sums: what they are charged, which an older table does not say
dense_sums() {
    if awk -F , -v on="$on" '$3 == on && $4 == "sum" { there = 1 } END { exit !there }' "$costs"; then
        printf 'Dense sums are charged what adding takes longer than the transfers beside which it runs'
    else
        printf 'Dense sums are charged nothing'
    fi
}

page() {
    cat <<END
## The scaling study

Where is the best of ours ahead of the best published algorithm, and where not? Of the cells that were simulated (a network, model, density and number of ranks; under a model ahead / within / behind):

END
    study leads
    cat <<END

**ahead**, **behind**: by more than the simulator's error, $(facts error), the largest by which a simulated step of \`sim-calibration\` differs from the same step on an emulated network of 4 and 8 nodes ($(facts error_of)); **within the error**: by less, which shows nothing. The three numbers: seconds of the best published algorithm over those of the best of ours. Simulated steps are mostly too short, and most of all those of gtopk-rd and spardl.

- **coo32**: all in the papers' format; ours is then gtopk-rd alone. **lossless**: ours may send packed-f32 and packed-fast-f32, too: packed indices, values bit for bit. **rounded**: ours may send packed and packed-fast, too, which round values to bf16 (the error stays in the residual); of whether models converge as well with it there is one run, ten epochs of ResNet-20 with gtopk (\`results/measured/resnet20-cifar10-p4-packed\`). Published algorithms are in coo32 throughout, though all but the dense ones could be sent in these formats, and "ours" is then mostly one of them in ours.
END
    printf '%s' '- **local work**: selecting, packing, unpacking and merging: none, or charged to all'
    [ -z "$costs" ] || printf '%s' " as measured on the device $on (\`$costs\`, words timed on two ranks). $(dense_sums)"
    printf .
    if [ "$(facts local)" = true ]; then
        printf ' It is added to simulated seconds as the cost lines have it'
        [ "$(facts added)" = 0 ] || printf '%s' ": in the $(facts added) steps of the aims that were simulated with it, too, the sum is $(facts added_least) to $(facts added_most) times what the simulation has"
        printf .
    fi
    cat <<END

- Every cell counts once: 100gbe has the alpha/beta of 10gbe, so its communication is the same times a constant; only with local work is it a network of its own.

**simulated**: the program itself, every rank, under SimGrid (docs/simulation.md). **model** or (m): the alpha-beta cost lines of \`sparsetrain predict\`. **Published**: every algorithm of others, with its paper's format, coo32 ($(facts published)). **Ours**: gtopk-rd, and the four packed formats (\`--wire packed-f32\`, \`packed-fast-f32\`, \`packed\`, \`packed-fast\`), which no paper has. A step is the exchange alone. One rank a node, its own link; so hitopk and torus2d are topka and dense here.

What was not simulated (above P = $(facts simulated_to), and where a simulation is missing) by the cost model alone, in the same bands:

END
    study leads --kind model
    if [ "$(facts local)" = true ]; then
        cat <<END

### By network, and how far a faster packing would get

The simulated cells again, network by network. **Packing free**: as if a packed format took no more local work than coo32 does, whose selecting, copying and merging stay: beyond that no packing gets that takes as long as copying.

END
        study bound
    fi
    cat <<END

### Ahead, within the error, behind: where

Communication alone:

END
    study where
    if [ "$(facts local)" = true ]; then
        printf '\n%s\n\n' "With local work as measured on $on, where the best published algorithm of the simulated cells is $(facts best_published_charged) (without: $(facts best_published)):"
        study where --charged
    fi
    cat <<END

### The aims: weak scaling on 1 Gbit/s

Steps of the gTop-k paper's GPU (its v1, Table VI), density 0.001, efficiency = computing / (computing + exchange), all simulated. Communication alone:

END
    study aims
    echo
    if [ -n "$costs" ]; then
        printf '%s' "With selection, packing and merging as measured on the device $on (\`$costs\`; injected by \`--select-cost\`, \`--word-cost\`), beside a GPU that computes"
        [ "$on" != cpu ] || printf '%s' ". Those are passes over the gradient at the speed of a CPU's memory; what a GPU takes, on which gradients would stay, has not been measured yet"
        printf ':\n\n'
        study aims --charged
        echo
    else
        printf '%s\n\n' "With selection and merging: there is no table of measured costs (\`scripts/measure-costs.sh\`), so nothing of them is in these numbers."
    fi
    cat <<END
What the paper measured is far below its own cost model: its throughputs at 32 GPUs over 32 times that of one, beside that model with its alpha and beta, and the simulation, which is to be held against the model:

END
    study paper
    cat <<END

The paper's model has a ring for dense, 2(P-1) start-ups; the allreduce that is simulated takes 2 log2(P). The aims are held against our simulated numbers. They are no comparison with the measured column: what slowed the paper's steps down beyond its cost model is not in the simulation.

END
    map_of packed rounded 'The fastest of all in any format'
    printf '%s\n\n' "![Who wins, in any format](${pictures}winners-packed.png)" "![How far ahead: rounded](${pictures}ahead.png)"
    map_of packed-f32 lossless 'The fastest of all in coo32, packed-f32 or packed-fast-f32'
    printf '%s\n\n' "![How far ahead: lossless](${pictures}ahead-lossless.png)"
    map_of coo32 coo32 'The fastest of all in coo32, where ours is gtopk-rd and all others are published'
    cat <<END
![Who wins, in coo32](${pictures}winners-coo32.png)

### Crossovers

Where the winner changes, of the numbers of ranks in the map, by communication alone. A change with (m) comes with the step from simulation to model, and may be no more than the difference of the two.

END
    study winners
    cat <<END

### Simulation and cost model

Simulated seconds over predicted ones, of everything that was simulated:

END
    study ratios
    echo
    study disagreements
    cat <<END

Not simulated: gtopk-naive and hitopk, which send what topka sends; gaussiank, which does so with one gathering more; what sends every entry, which competes by the model, with local work and without it (dense in f32 takes by it $(facts dense_behind) times as long as the best or more where no local work is charged); what was far behind at the number of ranks before; and what would need more than 10 GB. Long selections ran at an S-th of the entries over an S-th of the bandwidth (\`scale\` in the rows). Gradients are drawn as ranks of real runs had them (\`results/measured/profiles\`); models without a profile have that of the nearest model. micro ran over independent numbers: in coo32 over ten times k of them, for its times follow from k and P alone there; in the packed formats over whole gradients.

### How this was made

\`$command\`, $seconds s of simulation on $made_on (simulated times are the same on every machine). ${pictures:+In \`}${pictures:-Beside this page}${pictures:+\`}: \`simulated.csv\` (a row an algorithm and cell), \`aims.csv\`, \`cells.csv\` (what the map shows), \`jobs.tsv\` (the command of each row). Rows are of the commit that simulated them; those of an algorithm that has not changed since are kept:

END
    study commits
}

# map_of FORMAT CLASS WHO: who wins in this class of messages
map_of() {
    printf '### Who wins: %s\n\n%s, by communication alone, and seconds of the best published algorithm (in coo32) over those of the best of ours: in bold behind, with ~ within the simulator'\''s error.\n\n' "$2" "$3"
    study map --wire "$1"
    echo
}
