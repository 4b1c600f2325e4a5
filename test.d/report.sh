#!/usr/bin/env bash
# The page of bench report, made by the real launcher, and the pictures of topologies and fleets that
# unit tests left behind; all in a browser where there is one.
set -u
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
page=$tmp/page.html

made() {
  "$root/gpunvme" bench report "$root/bench/results" --out "$page" >"$tmp/log" 2>&1 &&
    grep -q 'Chart.js v' "$page" && grep -q 'MIT License' "$page" &&
    [ "$(stat -c %s "$page")" -lt 1000000 ]
}

# What a page has become is in $tmp/dom, what its console says in $tmp/log.
browse() {
  timeout 60 "$browser" --headless --no-sandbox --disable-gpu "--user-data-dir=$tmp/profile" \
    --enable-logging=stderr --virtual-time-budget=5000 --dump-dom "file://$1" \
    >"$tmp/dom" 2>"$tmp/console" </dev/null || return 1
  grep ':CONSOLE' "$tmp/console" | tee "$tmp/log"
  return 0
}

# Every figure has its canvas, and the console is silent.
drawn() {
  local figures canvases
  browse "$page" || return 1
  figures=$(grep -o '<figure ' "$tmp/dom" | wc -l)
  canvases=$(grep -o '<canvas role="img"' "$tmp/dom" | wc -l)
  echo "$figures figures, $canvases drawn" >>"$tmp/log"
  [ "$figures" -gt 0 ] && [ "$figures" = "$canvases" ] && ! grep -q ':CONSOLE' "$tmp/console"
}

# A picture that is no picture has no width.
pictures() {
  local all=$tmp/pictures.html
  {
    echo '<!DOCTYPE html><body>'
    printf '<img src="file://%s">\n' "$@"
    echo '<script>onload = () => { for (const i of document.images)'
    echo '  document.body.append("[" + (i.naturalWidth > 800 ? "drawn" : "broken " + i.src) + "]"); }'
    echo '</script>'
  } >"$all"
  browse "$all" || return 1
  grep -o '\[broken [^]]*' "$tmp/dom" >>"$tmp/log"
  [ "$(grep -o '\[drawn\]' "$tmp/dom" | wc -l)" = $# ]
}

if made; then
  echo 'PASS report: the page'
else
  sed 's/^/  /' "$tmp/log"
  echo 'FAIL report: the page'
  exit
fi
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
if [ -z "$browser" ]; then
  echo 'SKIP report: plots in a browser: no chromium'
elif drawn; then
  echo 'PASS report: plots in a browser'
else
  sed 's/^/  /' "$tmp/log"
  echo 'FAIL report: plots in a browser'
fi
shopt -s nullglob
svgs=("$root"/tools/target/{topology,fleet}/*.svg)
if [ ${#svgs[@]} = 0 ]; then
  echo 'SKIP report: pictures in a browser: unit tests of tools have not run here'
elif [ -z "$browser" ]; then
  echo 'SKIP report: pictures in a browser: no chromium'
elif pictures "${svgs[@]}"; then
  echo 'PASS report: pictures in a browser'
else
  sed 's/^/  /' "$tmp/log"
  echo 'FAIL report: pictures in a browser'
fi
