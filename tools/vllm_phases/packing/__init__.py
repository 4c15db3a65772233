"""Where the pods of a release would run, and on which cards: HAMi's scheduler, replayed without a cluster."""
