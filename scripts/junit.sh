# shellcheck shell=bash
# Sourced by what reads JUnit's reports.

# Sums reports (standard input) into lines "STATUS class.method why".
junit_results() {
  awk '
    function attribute(name, text,   a) {
      if (!match(text, " " name "=\"[^\"]*\"")) return ""
      a = substr(text, RSTART, RLENGTH); sub(/^[^"]*"/, "", a); sub(/"$/, "", a)
      gsub(/&#10;|&#xA;/, " ", a); gsub(/&lt;/, "<", a); gsub(/&gt;/, ">", a)
      gsub(/&quot;/, "\"", a); gsub(/&apos;/, "\047", a); gsub(/&amp;/, "\\&", a)
      return a
    }
    function finish() { if (name != "") print status, name (why == "" ? "" : ": " why); name = "" }
    /<testcase / { finish(); name = attribute("classname", $0) "." attribute("name", $0); status = "PASS"; why = "" }
    /<(failure|error)[ >]/ && name != "" { status = "FAIL"; why = substr(attribute("message", $0), 1, 300) }
    /<skipped/ && name != "" {
      status = "SKIP"; why = attribute("message", $0)
      if (why == "" && match($0, /CDATA\[[^:]*: /)) {
        why = substr($0, RSTART + RLENGTH); sub(/\]\]>.*/, "", why)
      }
    }
    /<\/testsuite>/ { finish() }'
}
