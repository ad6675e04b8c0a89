#!/bin/sh
# oktopk-table2: numbers of parameters of VGG-16, LSTM and BERT
# paper: Table 2: VGG-16 14728266, LSTM (AN4) 27569568, BERT 133547324 parameters
# runs: one step of training on made-up images, whose log counts the parameters of the network; LSTM on AN4 and BERT are
#     not among the models of this program (sparsetrain list), so their rows have no number of ours
# needs: any machine
# takes: full: 2 s; quick: 3 s
# agrees: the numbers are equal
. scripts/reproduce/lib.sh

claim oktopk-sizes
against measured
train vgg16.jsonl 1 --model vgg16 --data synthetic:8x8 --batch 1 --steps 1 --device cpu
for model in VGG-16 LSTM BERT; do
    look_up oktopk-models.csv parameters model=$model
    case $model in
    VGG-16) ours=$(of vgg16.jsonl header parameters) why= ;;
    *) ours='' why="skipped: sparsetrain has no such model" ;;
    esac
    row $model parameters '' "$paper" "$source" "$ours" real equal "$why"
done
finish
