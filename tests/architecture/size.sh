#!/bin/bash
# A file can be read in one sitting: at most 500 lines.
cd "$1" || exit 2
long=$(find engine transports actors algorithms launch tests benchmarks -name '*.h' -o -name '*.cpp' | xargs -r wc -l | awk '$2 != "total" && $1 > 500')
[ -z "$long" ] && exit 0
echo "these files are longer than 500 lines; find the second thing that they do and give it a file:"
echo "$long"
exit 1
