import { defineConfig } from 'tsup'

export default defineConfig({
  entry: { index: 'src/index.ts', worker: 'src/worker/main.ts' },
  format: 'esm',
  target: 'node20',
  sourcemap: true,
  clean: true,
  // tsup takes what is optional for a part of the bundle.
  external: ['onnxruntime-node'],
})
