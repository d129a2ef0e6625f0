export {
  exportFormats,
  exportRun,
  exportTables,
  type ExportFormat,
  type ExportOptions,
} from './export-run.ts'
export type { WriteChunk } from './parquet.ts'
export type { Column, ColumnType, ExportTable, Row, Table } from './table.ts'
