#!/usr/bin/env bash
# The page of bench report, made by the real launcher, and in a browser where there is one.
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

# Every figure has its canvas, and the console is silent.
drawn() {
  local figures canvases
  timeout 60 "$browser" --headless --no-sandbox --disable-gpu "--user-data-dir=$tmp/profile" \
    --enable-logging=stderr --virtual-time-budget=5000 --dump-dom "file://$page" \
    >"$tmp/dom" 2>"$tmp/console" </dev/null || return 1
  grep ':CONSOLE' "$tmp/console" | tee "$tmp/log"
  figures=$(grep -o '<figure ' "$tmp/dom" | wc -l)
  canvases=$(grep -o '<canvas role="img"' "$tmp/dom" | wc -l)
  echo "$figures figures, $canvases drawn" >>"$tmp/log"
  [ "$figures" -gt 0 ] && [ "$figures" = "$canvases" ] && ! grep -q ':CONSOLE' "$tmp/console"
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
