#!/bin/bash
# Each third-party library is included from its own folder only, so that it can be replaced there; and a few standard headers
# are kept where they belong. Each line: what is included (a pattern after `<` or `"`), then the folders or files that may.
cd "$1" || exit 2
fences='
Eigen/                          engine/ops/cpu engine/loss
(oneapi/)?dnnl                  engine/ops/cpu
(cblas|openblas)                engine/ops/cpu
nlohmann/                       engine/base/json/json.cpp
simdjson                        engine/base/json/valid_json.cpp
(spdlog|fmt)/                   engine/base/log/log.cpp
yaml-cpp/                       launch
CLI/                            launch
histedit\.h                      launch/terminal
sqlite3\.h                       engine/base/database
seccomp\.h                      actors/sandbox/seccomp_filter.cpp
sentencepiece                   engine/tokenizer
unicode/                        engine/base/text/character_classes.cpp engine/jinja engine/tokenizer
pcre2                           engine/tokenizer
(arrow|parquet)/                engine/data/readers
msgpack                         transports/wire
zmq                             transports/zmq
sodium                          transports/zmq engine/base/text/base64.cpp engine/base/random/secret.cpp engine/base/random/sha256.cpp launch/serve/http/access.cpp
mpi\.h                          transports/mpi
linux/perf_event\.h             launch/profile/counters.cpp
asio[./]                        actors/runtime transports
boost/                          launch/serve/http
openssl/                        launch/serve/http
(xxhash|xxh3|zlib)\.h           engine/checkpoint engine/data
regex>                          nowhere
(mutex|shared_mutex|condition_variable)>  transports engine launch
'
bad=0
while read -r pattern allowed; do
  [ -z "$pattern" ] && continue
  found=$(grep -rnE --include='*.h' --include='*.cpp' "^[[:space:]]*#[[:space:]]*include[[:space:]]*[<\"]$pattern" \
    engine transports actors algorithms launch 2>/dev/null)
  for place in $allowed; do found=$(grep -vE "^$place[/:]" <<<"$found"); done
  [ -z "$found" ] && continue
  bad=1
  echo "'$pattern' may be included in: $allowed. It is included in:"
  echo "$found"
done <<<"$fences"

found=$(grep -rnE --include='*.h' '^#include <(iostream|asio[./].*|Eigen/.*)' engine transports actors algorithms launch | grep -vE '^engine/(ops/cpu|loss)/')
if [ -n "$found" ]; then
  bad=1
  echo "heavy headers stand in .cpp files only:"
  echo "$found"
fi
exit $bad
