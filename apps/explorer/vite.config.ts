import { defineConfig } from 'vite'

export default defineConfig({
  root: 'web',
  logLevel: 'warn',
  build: {
    outDir: '../dist/web',
    emptyOutDir: true,
    target: 'es2023',
    // Nothing is inlined, so that the page needs no more than its own files.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rolldownOptions: {
      // Marks for servers that render React, which libraries carry along.
      onLog: (level, log, handle) => {
        if (log.code !== 'MODULE_LEVEL_DIRECTIVE') handle(level, log)
      },
    },
  },
})
