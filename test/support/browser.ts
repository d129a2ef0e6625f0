import { chromium, type Browser } from 'playwright-core'

/** For what never comes: a busy machine draws a page late. */
const PATIENCE_MS = 300_000

/** Opens Debian's Chromium, with nothing that calls home. */
export async function launchBrowser(executablePath: string): Promise<Browser> {
  const browser = await chromium.launch({
    executablePath,
    timeout: PATIENCE_MS,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  })
  browser.on('context', (context) => context.setDefaultTimeout(PATIENCE_MS))
  return browser
}
