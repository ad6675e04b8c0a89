#!/bin/sh
# gtopk-single-gpu: training speed of one worker, without any exchange
# paper: v1, Table VI: seconds an iteration and images/s of one Nvidia P102-100: VGG-16 1317, ResNet-20 876 images/s at batch
#     128 (AlexNet 173, ResNet-50 52: no such models here)
# runs: sparsetrain bench net at batch 128: forward, backward and update of one process, on the CPU (one thread; quick: batch
#     8) and, where there is one, on the GPU
# needs: any machine; a GPU for numbers that can be compared
# takes: full: 29 s; quick: 2 s
# agrees: a GPU of today is at least as fast as the paper's. A CPU is shown without a claim
. scripts/reproduce/lib.sh

claim gtopk-gpu
against measured
for device in cpu cuda; do
    if [ $device = cuda ] && skipped_gpu 'training speed' images/s 'v1: Table VI'; then continue; fi
    for model in vgg16 resnet20; do
        case $model in vgg16) name=VGG-16 ;; *) name=ResNet-20 ;; esac
        look_up gtopk-single-gpu.csv images_per_s model=$name
        if [ $device = cpu ]; then
            batch=$(pick 128 8) steps=$(pick 2 1) rule=none why="batch $batch on one CPU core"
        else
            batch=128 steps=$(pick 20 5) rule='at least' why=
        fi
        job $device-$model.jsonl "$program" bench net --device $device --model $model --batch "$batch" --steps "$steps" --repeat "$(pick 5 2)" --json
        about_device='the CPU'
        [ $device = cpu ] || about_device=$(values $device-$model.jsonl device_about)
        row "$name, $about_device" 'training speed' images/s "$paper" "$source" "$(values $device-$model.jsonl images_per_s)" real "$rule" "$why"
    done
done
for name in AlexNet ResNet-50; do
    look_up gtopk-single-gpu.csv images_per_s model=$name
    row $name 'training speed' images/s "$paper" "$source" '' real none 'skipped: sparsetrain has no such model'
done
finish
