#!/bin/sh
# A reward in plain sh: 1 for a completion that says thank you, 0 for one that does not.
while IFS= read -r line; do
  id=${line#'{"id":'}            # "id" always comes first
  id=${id%%,*}
  completion=${line#*'"completion":'}
  case $completion in
    *[Tt]'hank you'*) reward=1 ;;
    *) reward=0 ;;
  esac
  echo "{\"id\": $id, \"reward\": $reward}"
done
