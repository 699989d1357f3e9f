/* Records of a tree to and from bytes: see tree.h. */
#include "tree.h"

#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a head is sent as it is");
_Static_assert(offsetof(struct tree_record, attributes) == TREE_SUMMED, "see tree.h");
_Static_assert(offsetof(struct tree_record, bytes) == TREE_HEAD, "see tree.h");

/* Parts that may follow the head. */
enum { BYTES = 1, NAME = 2 };
static const uint8_t has[TREE_KINDS] = {
    [TREE_START] = BYTES, [TREE_ENTER] = NAME, [TREE_FILE] = NAME,
    [TREE_LINK] = BYTES | NAME, [TREE_DATA] = BYTES,
};

static uint32_t sum_of(const void *bytes, size_t length)
{
    return (uint32_t)XXH64(bytes, length, TREE_VERSION);
}

void tree_put(struct bytes *into, const struct tree_record *record)
{
    size_t name_length = strlen(record->name), begin = into->length;
    bytes_add(into, record, TREE_HEAD);
    if (record->kind != TREE_DATA)
        bytes_add(into, record->bytes, record->length);
    bytes_add(into, record->name, name_length);
    char *head = into->data + begin;
    uint32_t sum = sum_of(head + TREE_SUMMED, into->length - begin - TREE_SUMMED);
    memcpy(head + 2, &(uint16_t){(uint16_t)name_length}, 2);
    memcpy(head + 8, &sum, 4);
    sum = sum_of(head, 12);
    memcpy(head + 12, &sum, 4);
}

bool tree_is_name(const char *name, size_t length)
{
    return length > 0 && length <= TREE_NAME_MOST && !memchr(name, '/', length) &&
           !memchr(name, 0, length) && !(length == 1 && name[0] == '.') &&
           !(length == 2 && name[0] == '.' && name[1] == '.');
}

/* Return NULL, or the defect of a record whose checksums match. */
static const char *wrong(const struct tree_record *record)
{
    uint32_t length = record->length;
    bool data = record->kind == TREE_DATA;
    if (data && (!length || record->offset > (uint64_t)INT64_MAX - length))
        return "data beyond what a file can have";
    if (record->kind == TREE_LINK &&
        (!length || length > 4095 || memchr(record->bytes, 0, length)))
        return "a symbolic link without a target";
    bool top = record->kind == TREE_ENTER && !record->name_length;
    if (has[record->kind] & NAME && !top &&
        !tree_is_name(record->name, record->name_length))
        return "a name that leads elsewhere";
    return NULL;
}

long tree_get(struct tree_record *record, const uint8_t *bytes, size_t length,
              const char **why)
{
    if (length < TREE_SUMMED)
        return 0;
    memcpy(record, bytes, TREE_SUMMED);
    *why = "a record that was damaged on its way, or is of another release";
    if (record->head_sum != sum_of(bytes, 12))
        return -1;
    *why = "a record of no known kind";
    if (record->kind < TREE_START || record->kind >= TREE_KINDS)
        return -1;
    *why = "a record of a wrong length";
    if (record->length > (has[record->kind] & BYTES ? TREE_DATA_MOST : 0) ||
        record->name_length > (has[record->kind] & NAME ? TREE_NAME_MOST : 0))
        return -1;
    size_t whole = (size_t)TREE_HEAD + record->length + record->name_length;
    if (length < whole)
        return 0;
    *why = "a record that was damaged on its way";
    size_t summed = record->kind == TREE_DATA ? TREE_HEAD : whole;
    if (record->sum != sum_of(bytes + TREE_SUMMED, summed - TREE_SUMMED))
        return -1;
    memcpy(record, bytes, TREE_HEAD);
    record->bytes = bytes + TREE_HEAD;
    memcpy(record->name, record->bytes + record->length, record->name_length);
    record->name[record->name_length] = '\0';
    *why = wrong(record);
    return *why ? -1 : (long)whole;
}
