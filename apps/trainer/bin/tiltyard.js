#!/usr/bin/env node
// Apart from what is built, so that the command can be linked before there is a build.
await import('../dist/cli.js')
