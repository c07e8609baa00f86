"""Capture files to octets in order: pcap, pcapng, IP, TCP."""
