"""The long-running controller: when passes run, and the threads around them."""
