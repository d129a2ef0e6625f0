export { justBashSandbox } from './just-bash-sandbox.ts'
