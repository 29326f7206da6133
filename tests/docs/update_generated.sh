#!/bin/bash
# Writes the generated parts of docs: configuration.md, request-fields.md, parity.md, and the tables of the pages coming-from-*.md.
# Usage: tests/docs/update_generated.sh PROGRAM
set -euo pipefail
program=$(realpath "${1:?usage: tests/docs/update_generated.sh PROGRAM}")
cd "$(dirname "$0")/../../docs"
"$program" explain --reference >configuration.md
"$program" explain --request-fields >request-fields.md
"$program" parity --table ../tests/data/parity >parity.md
for page in coming-from-*.md; do
  tool=$(sed -n 's/^<!-- table: \(.*\) -->$/\1/p' "$page")
  "$program" import --table "$tool" >"$page.table"
  sed -i -e "/^<!-- table: /,/^<!-- end of table -->/{//!d}" -e "/^<!-- table: /r $page.table" "$page"
  rm "$page.table"
done
