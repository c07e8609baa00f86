"""The edge of [MC-MQSRM]: arriving requests, posted messages, and the streams between."""
