#!/usr/bin/env bash
# The normal distribution of simple-statistics has a probability of 0.001 below -10, and its error function is negative at 1e-10.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm install --silent --no-audit --no-fund simple-statistics@7.12.1
cat >finding.cjs <<'END'
const s = require("simple-statistics");
console.log(`Node ${process.version}, simple-statistics 7.12.1`);
const below = s.cumulativeStdNormalProbability(-10);
const erf = s.errorFunction(1e-10);
console.log(`cumulativeStdNormalProbability(-4) = ${s.cumulativeStdNormalProbability(-4)}; 3.2e-5 is right`);
console.log(`cumulativeStdNormalProbability(-10) = ${below}; 7.6e-24 is right`);
console.log(`errorFunction(1e-10) = ${erf}; 1.13e-10 is right`);
const asDescribed = below > 1e-4 && erf < 0;
console.log(asDescribed ? "Small values are wrong." : "CHANGED: small values are right.");
process.exit(asDescribed ? 0 : 1);
END
node finding.cjs
