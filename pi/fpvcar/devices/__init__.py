"""Hardware access: interfaces above, pins and registers below. Only this package
imports hardware libraries."""
