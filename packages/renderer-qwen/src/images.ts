/** Pixels of a patch side times patches merged: one token covers 32 × 32 pixels. */
const TOKEN_PIXELS = 32
const LEAST_AREA = 65_536
const MOST_AREA = 16_777_216

/** Tokens of an image in Qwen3-VL: sides rounded to multiples of 32, the area scaled into bounds. */
export function qwenImageTokens(width: number, height: number): number {
  let sides = [height, width].map((side) => roundHalfEven(side / TOKEN_PIXELS))
  const area = sides[0]! * sides[1]! * TOKEN_PIXELS ** 2
  if (area > MOST_AREA) {
    const scale = Math.sqrt((height * width) / MOST_AREA)
    sides = [height, width].map((side) => Math.max(1, Math.floor(side / scale / TOKEN_PIXELS)))
  } else if (area < LEAST_AREA) {
    const scale = Math.sqrt(LEAST_AREA / (height * width))
    sides = [height, width].map((side) => Math.ceil((side * scale) / TOKEN_PIXELS))
  }
  return sides[0]! * sides[1]!
}

/** Python's `round`. */
function roundHalfEven(value: number): number {
  const down = Math.floor(value)
  if (value - down !== 0.5) return Math.round(value)
  return down % 2 === 0 ? down : down + 1
}
