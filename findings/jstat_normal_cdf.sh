#!/usr/bin/env bash
# In jStat, `normal.cdf(-10, 0, 1)` and `erfc(10)` are exactly 0; 7.6e-24 and 2.1e-45 are right.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm install --silent --no-audit --no-fund jstat@1.9.6
cat >finding.cjs <<'END'
const { jStat } = require("jstat");
console.log(`Node ${process.version}, jStat ${require("jstat/package.json").version}`);
const cdf = jStat.normal.cdf(-10, 0, 1);
const erfc = jStat.erfc(10);
console.log(`normal.cdf(-6) = ${jStat.normal.cdf(-6, 0, 1)}; 9.8658764503770e-10 is right`);
console.log(`normal.cdf(-10) = ${cdf}; 7.6e-24 is right`);
console.log(`erfc(10) = ${erfc}; 2.1e-45 is right`);
const asDescribed = cdf === 0 && erfc === 0;
console.log(asDescribed ? "The tail is lost." : "CHANGED: the tail is there.");
process.exit(asDescribed ? 0 : 1);
END
node finding.cjs
