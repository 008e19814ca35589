"""The API server: one client over two transports, HTTPS and the in-memory cluster."""
