import { z } from 'zod'

import { defineTool } from '../author/bundle-module.ts'
import { ToolError } from '../author/tool.ts'

/** The tool that a bundle with a sandbox offers. The result shows output, errors, and an exit code other than 0. */
export const bashTool = defineTool({
  name: 'bash',
  description: 'Runs a bash script in the working directory, where files stay from call to call.',
  parameters: z.object({ command: z.string() }),
  // The sandbox gives exit codes for what the model does wrong; what it throws is its own failure.
  fatal: true,
  async run({ command }, { sandbox, signal }) {
    if (sandbox === undefined) throw new ToolError('there is no sandbox')
    const { exitCode, stdout, stderr, droppedBytes, stopped } = await sandbox.exec(command, {
      signal,
    })
    const parts = [stdout, stderr].map((text) => text.trimEnd()).filter((text) => text !== '')
    if (droppedBytes > 0) parts.push(`[${droppedBytes} bytes of output were left out]`)
    if (stopped !== undefined) parts.push(`[stopped: ${stopped} limit]`)
    else if (exitCode !== 0) parts.push(`[exit code ${exitCode}]`)
    return parts.join('\n')
  },
})
