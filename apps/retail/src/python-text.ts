/**
 * Python's way to write numbers and JSON. The benchmark's tools answer in it, so what a model reads depends on it.
 */

/** A float as Python's `repr` writes it: shortest form, with `.0` when whole, exponents from 1e16 on and below 1e-4. */
export function pythonFloat(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf'
  if (value === 0) return Object.is(value, -0) ? '-0.0' : '0.0'
  const [mantissa, exponentText] = value.toExponential().split('e')
  const exponent = Number(exponentText)
  if (exponent >= 16 || exponent < -4) {
    const digits = String(Math.abs(exponent)).padStart(2, '0')
    return `${mantissa!}e${exponent < 0 ? '-' : '+'}${digits}`
  }
  const plain = value.toString()
  return plain.includes('.') ? plain : `${plain}.0`
}
