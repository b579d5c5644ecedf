#!/bin/sh
# SPDX-FileCopyrightText: The Airpath authors
# SPDX-License-Identifier: Apache-2.0
# Video over GSM without RLP, as in Singh (2000): UDP loses damaged packets, UDP-Lite delivers them.
# Usage: examples/video.sh [DIR]     (by default results/video; takes about a minute)
set -eu
scenario=$(dirname "$0")/gsm-transparent.toml
out=${1:-results/video}
mkdir -p "$out"

airpath video make --codec h263p --fps 5 --frames 100 --rate '4 kbit/s' --slice-bytes 100 \
    --key-frame-interval 25 --out "$out/clip.h263"

for transport in udp udp-lite; do
    echo "-- $transport"
    airpath exec --scenario "$scenario" --seed 7 --out "$out/$transport" --server-grace '20 s' \
        --server "airpath video receive --transport $transport --silence '20 s' \
            --out '$out/$transport.h263' --sent '$out/$transport.csv'" \
        -- airpath video send "$out/clip.h263" --to server:5004 --transport "$transport" \
            --packet-bytes 150 --pace spread --log "$out/$transport.csv"
done

airpath video compare "$out/clip.h263" "$out/udp.h263" "$out/udp-lite.h263" --out "$out/quality"
