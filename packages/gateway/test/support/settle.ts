/** Lets everything run that waits for nothing. */
export async function settle(): Promise<void> {
  for (let round = 0; round < 20; round += 1) await new Promise(setImmediate)
}
