import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'

import { router } from './router.tsx'
import { restoreTheme } from './theme.ts'

restoreTheme()

const client = new QueryClient({
  defaultOptions: { queries: { staleTime: 1_000, retry: false, refetchOnWindowFocus: true } },
})

createRoot(document.querySelector('#root')!).render(
  <StrictMode>
    <QueryClientProvider client={client}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
)
