import { byteTokenizer } from '@tiltyard/testkit'

/** One id per byte, and the markers of the Qwen layouts. */
export const tokenizer = byteTokenizer([
  '<|endoftext|>',
  '<|im_start|>',
  '<|im_end|>',
  '<|vision_start|>',
  '<|vision_end|>',
  '<|image_pad|>',
  '<tool_call>',
  '</tool_call>',
  '<tool_response>',
  '</tool_response>',
  '<think>',
  '</think>',
])
