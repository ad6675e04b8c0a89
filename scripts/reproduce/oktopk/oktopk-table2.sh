#!/bin/sh
# oktopk-table2: numbers of parameters of VGG-16, LSTM and BERT
# paper: Table 2: VGG-16 14728266, LSTM (AN4) 27569568, BERT 133547324 parameters
# runs: one step of training, on made-up images, on AN4 and of BERT on WikiText-2, whose log counts the parameters of the network
# needs: AN4 for the LSTM's row; WikiText-2, BERT's vocabulary and 3 GB of memory for BERT's; a row is left empty without them
# takes: full: 20 s; quick: 20 s
# agrees: the numbers are equal
. scripts/reproduce/lib.sh

claim oktopk-sizes
against measured
train vgg16.jsonl 1 --model vgg16 --data synthetic:8x8 --batch 1 --steps 1 --device cpu
why_bert='skipped: no WikiText-2'
if [ -n "$finished" ] || listed datasets wiki; then
    train bert.jsonl 1 --model bert --preset base --batch 1 --steps 1 --eval-every never --device cpu
    why_bert=''
fi
why_speech='skipped: no AN4'
if [ -n "$finished" ] || listed datasets an4; then
    train speech.jsonl 1 --model speech --batch 1 --steps 1 --eval-every never --device cpu
    why_speech=''
fi
for model in VGG-16 LSTM BERT; do
    look_up oktopk-models.csv parameters model=$model
    case $model in
    VGG-16) ours=$(of vgg16.jsonl header parameters) why= ;;
    BERT) ours=$([ -n "$why_bert" ] || of bert.jsonl header parameters) why=$why_bert ;;
    *) ours=$([ -n "$why_speech" ] || of speech.jsonl header parameters) why=$why_speech ;;
    esac
    row $model parameters '' "$paper" "$source" "$ours" real equal "$why"
done
finish
