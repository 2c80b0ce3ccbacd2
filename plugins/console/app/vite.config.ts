import { defineConfig } from 'vite';

/** The page of the console: `npm run build` puts it into `dist/console/`. */
export default defineConfig({
  root: import.meta.dirname,
  base: '/console/',
  logLevel: 'warn',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: '../../../dist/console',
    emptyOutDir: true,
    target: 'es2022',
    // Its polyfill would be code within the page.
    modulePreload: { polyfill: false },
    // A picture within a style would be no file of its own.
    assetsInlineLimit: 0,
  },
});
