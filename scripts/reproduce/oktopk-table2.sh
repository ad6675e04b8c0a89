#!/bin/sh
# oktopk-table2: numbers of parameters of VGG-16, LSTM and BERT
# paper: Table 2: VGG-16 14728266, LSTM (AN4) 27569568, BERT 133547324 parameters
# runs: one step of training, on made-up images and of BERT on WikiText-2, whose log counts the parameters of the network; LSTM on AN4 is
#     not among the models of this program (sparsetrain list), so its row has no number of ours
# needs: WikiText-2, BERT's vocabulary and 3 GB of memory for BERT's row, which is left empty without them
# takes: full: 17 s; quick: 17 s
# agrees: the numbers are equal
. scripts/reproduce/lib.sh

claim oktopk-sizes
against measured
train vgg16.jsonl 1 --model vgg16 --data synthetic:8x8 --batch 1 --steps 1 --device cpu
bert='' why_bert='skipped: no WikiText-2'
if listed datasets wiki; then
    train bert.jsonl 1 --model bert --preset base --batch 1 --steps 1 --eval-every never --device cpu
    bert=$(of bert.jsonl header parameters) why_bert=''
fi
for model in VGG-16 LSTM BERT; do
    look_up oktopk-models.csv parameters model=$model
    case $model in
    VGG-16) ours=$(of vgg16.jsonl header parameters) why= ;;
    BERT) ours=$bert why=$why_bert ;;
    *) ours='' why="skipped: sparsetrain has no such model" ;;
    esac
    row $model parameters '' "$paper" "$source" "$ours" real equal "$why"
done
finish
