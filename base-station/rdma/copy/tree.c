/* Records of a tree to and from bytes: see tree.h. */
#include "tree.h"

#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

enum { ATTRIBUTES = 40 };

/* What the body of each kind has. */
static const struct {
    uint8_t attributes, numbers, hash, bytes, name;
} has[TREE_KINDS] = {
    [TREE_START] = {.numbers = 1, .bytes = 1},
    [TREE_TARGET] = {.numbers = 2, .bytes = 1},
    [TREE_ENTER] = {.attributes = 1, .name = 1},
    [TREE_FILE] = {.attributes = 1, .numbers = 3, .name = 1},
    [TREE_LINK] = {.attributes = 1, .numbers = 2, .bytes = 1, .name = 1},
    [TREE_HARD] = {.numbers = 1, .name = 1},
    [TREE_XATTR] = {.bytes = 1, .name = 1},
    [TREE_BODY] = {.attributes = 1, .numbers = 3},
    [TREE_DATA] = {.numbers = 1, .bytes = 1},
    [TREE_WHOLE] = {.numbers = 1, .hash = 1},
    [TREE_SUM] = {.numbers = 1, .hash = 1},
    [TREE_END] = {.numbers = 1},
    [TREE_ANSWER] = {.numbers = 4},
    [TREE_BYE] = {.numbers = 1},
};

static uint8_t *put(uint8_t *at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        *at++ = (uint8_t)(value >> 8 * i);
    return at;
}

static uint64_t get(const uint8_t **at, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)*(*at)++ << 8 * i;
    return value;
}

static uint32_t sum_of(const void *bytes, size_t length)
{
    return (uint32_t)XXH64(bytes, length, TREE_VERSION);
}

static uint8_t *put_attributes(uint8_t *at, const struct tree_attributes *from)
{
    at = put(put(at, from->mode, 4), from->uid, 4);
    at = put(put(put(at, from->gid, 4), from->device, 4), from->inode, 8);
    return put(put(at, (uint64_t)from->mtime_ns, 8), (uint64_t)from->atime_ns, 8);
}

static void get_attributes(const uint8_t **at, struct tree_attributes *into)
{
    into->mode = (uint32_t)get(at, 4);
    into->uid = (uint32_t)get(at, 4);
    into->gid = (uint32_t)get(at, 4);
    into->device = (uint32_t)get(at, 4);
    into->inode = get(at, 8);
    into->mtime_ns = (int64_t)get(at, 8);
    into->atime_ns = (int64_t)get(at, 8);
}

void tree_put(struct bytes *into, const struct tree_record *record)
{
    int kind = record->kind;
    bool data = kind == TREE_DATA;
    size_t name = has[kind].name ? strlen(record->name) : 0;
    size_t bytes = has[kind].bytes ? record->length : 0, written = data ? 0 : bytes;
    size_t begin = into->length;
    bytes_reserve(into, TREE_HEADER + ATTRIBUTES + 32 + TREE_HASH_BYTES + written + name);
    uint8_t *head = (uint8_t *)into->data + begin, *body = head + TREE_HEADER, *at = body;
    if (has[kind].attributes)
        at = put_attributes(at, &record->attributes);
    for (int i = 0; i < has[kind].numbers; i++)
        at = put(at, record->numbers[i], 8);
    if (has[kind].hash) {
        memcpy(at, record->hash, TREE_HASH_BYTES);
        at += TREE_HASH_BYTES;
    }
    if (written)
        memcpy(at, record->bytes, written);
    memcpy(at + written, record->name, name);
    at += written + name;
    uint8_t *end = put(put(put(head, (uint64_t)kind, 2), name, 2),
                       (uint64_t)(at - body) + (data ? bytes : 0), 4);
    end = put(end, sum_of(body, (size_t)(at - body)), 4);
    put(end, sum_of(head, 12), 4);
    into->length = (size_t)(at - (uint8_t *)into->data);
    into->data[into->length] = '\0';
}

bool tree_is_name(const char *name, size_t length)
{
    return length > 0 && length <= TREE_NAME_MOST && !memchr(name, '/', length) &&
           !memchr(name, 0, length) && !(length == 1 && name[0] == '.') &&
           !(length == 2 && name[0] == '.' && name[1] == '.');
}

/* The body behind a sound header. NULL, or what is wrong with it. */
static const char *get_body(struct tree_record *record, const uint8_t *at, size_t body,
                            size_t name)
{
    const uint8_t *end = at + body - name;
    if (has[record->kind].attributes)
        get_attributes(&at, &record->attributes);
    memset(record->numbers, 0, sizeof record->numbers);
    for (int i = 0; i < has[record->kind].numbers; i++)
        record->numbers[i] = get(&at, 8);
    if (has[record->kind].hash) {
        memcpy(record->hash, at, TREE_HASH_BYTES);
        at += TREE_HASH_BYTES;
    }
    record->bytes = at;
    record->length = (uint32_t)(end - at);
    if (record->kind == TREE_DATA &&
        (!record->length || record->offset > (uint64_t)INT64_MAX - record->length))
        return "data beyond what a file can have";
    if (record->kind == TREE_LINK &&
        (!record->length || record->length > 4095 || memchr(at, 0, record->length)))
        return "a symbolic link without a target";
    bool top = record->kind == TREE_ENTER && name == 0;
    if (has[record->kind].name && !top && !tree_is_name((const char *)end, name))
        return "a name that leads elsewhere";
    memcpy(record->name, end, name);
    record->name[name] = '\0';
    return NULL;
}

long tree_get(struct tree_record *record, const uint8_t *bytes, size_t length,
              const char **why)
{
    if (length < TREE_HEADER)
        return 0;
    const uint8_t *at = bytes;
    size_t kind = get(&at, 2), name = get(&at, 2), body = get(&at, 4);
    uint32_t sum = (uint32_t)get(&at, 4);
    *why = "a record that was damaged on its way, or is of another release";
    if (get(&at, 4) != sum_of(bytes, 12))
        return -1;
    *why = "a record of no known kind";
    if (kind < TREE_START || kind >= TREE_KINDS)
        return -1;
    size_t fixed = (size_t)has[kind].attributes * ATTRIBUTES + has[kind].numbers * 8u +
                   (size_t)has[kind].hash * TREE_HASH_BYTES;
    *why = "a record of a wrong length";
    if (body > TREE_BODY_MOST || fixed + name > body || (name && !has[kind].name) ||
        (!has[kind].bytes && fixed + name < body) || name > TREE_NAME_MOST)
        return -1;
    if (length < TREE_HEADER + body)
        return 0;
    *why = "a record that was damaged on its way";
    if (sum_of(at, kind == TREE_DATA ? fixed : body) != sum)
        return -1;
    record->kind = (enum tree_kind)kind;
    const char *wrong = get_body(record, at, body, name);
    if (wrong)
        *why = wrong;
    return wrong ? -1 : (long)(TREE_HEADER + body);
}
