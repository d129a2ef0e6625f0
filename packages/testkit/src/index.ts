export * from './cases.ts'
