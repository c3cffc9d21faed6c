"""Draw a section as text, HTML or Markdown: each output in one module."""
