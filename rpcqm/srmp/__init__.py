"""Messages over HTTP ([MC-MQSRM]); only `connection` knows queues."""
