"""Groups of consumers: who reads which partition, and how far each group has come."""
