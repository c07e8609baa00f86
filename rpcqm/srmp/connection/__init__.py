"""The edge of [MC-MQSRM]: what arrives, what is sent, and the streams between."""
