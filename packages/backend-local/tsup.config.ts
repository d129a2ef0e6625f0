import { defineConfig } from 'tsup'

export default defineConfig({
  entry: { index: 'src/index.ts', worker: 'src/worker/main.ts' },
  format: 'esm',
  target: 'node20',
  sourcemap: true,
  clean: true,
})
