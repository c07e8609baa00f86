/* What the bench's load generator and limit server share: PDUs and hexadecimal text. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PDU_RESPONSE = 2, PDU_BIND = 11, PFC_LAST_FRAG = 2, PDU_HEADER = 16 };
enum { TYPE_AT = 2, FLAGS_AT = 3, LENGTH_AT = 8, CALL_ID_AT = 12, OPNUM_AT = 22 };

struct bytes {
    uint8_t *data;
    size_t length;
};

static inline void die(const char *what)
{
    perror(what);
    exit(1);
}

static inline unsigned fragment_length(const uint8_t *pdu)
{
    unsigned length = pdu[LENGTH_AT] | pdu[LENGTH_AT + 1] << 8;
    if (length < PDU_HEADER) {
        fprintf(stderr, "a fragment of %u bytes\n", length);
        exit(1);
    }
    return length;
}

static inline struct bytes from_hex(const char *text)
{
    struct bytes result = { malloc(strlen(text) / 2 + 1), strlen(text) / 2 };
    if (!result.data)
        die("malloc");
    for (size_t i = 0; i < result.length; i++) {
        unsigned value;
        if (sscanf(text + 2 * i, "%2x", &value) != 1) {
            fprintf(stderr, "not hexadecimal: %.8s\n", text + 2 * i);
            exit(2);
        }
        result.data[i] = value;
    }
    return result;
}
