import { chromium, type Browser } from 'playwright-core'

/** For what never comes: a busy machine draws a page late. */
const PATIENCE_MS = 300_000

/** Opens Debian's Chromium, with nothing that calls home. `patienceMs` bounds its start and every wait for a page. */
export async function launchBrowser(
  executablePath: string,
  patienceMs = PATIENCE_MS,
): Promise<Browser> {
  const browser = await chromium.launch({
    executablePath,
    timeout: patienceMs,
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
  browser.on('context', (context) => context.setDefaultTimeout(patienceMs))
  return browser
}
