"""The COM objects of MSMQ ([MC-MQAC]): coclasses over the events of the queue manager."""
