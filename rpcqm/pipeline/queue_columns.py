"""The columns of the data source `msmq`."""

SCHEMA = (
    "lookup_id long, message_id string, arrived timestamp, sent timestamp, label string, "
    "body binary, body_type int, priority int, message_class int, correlation_id string, "
    "application_tag long, response_queue string, soap_envelope string, extension binary, "
    "headers map<string,string>"
)
