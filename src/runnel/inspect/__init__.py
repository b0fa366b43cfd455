"""Looking into data folders, Runnel's and Kafka's, with a broker at work in them or not.

Nothing here writes, and no lock is taken. So a log may grow and a file vanish between two looks:
what is gone is passed over, and an end that is not whole is looked at again before it is judged.
"""
