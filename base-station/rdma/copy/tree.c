/* A tree of files as one stream: see tree.h. */
#include "tree.h"

#include <string.h>

enum { ATTRIBUTES = 40 };

/* Lengths of the bodies without names and data. */
static const uint32_t fixed[] = {
    [TREE_START] = 4,  [TREE_ENTER] = ATTRIBUTES, [TREE_LEAVE] = 0,
    [TREE_FILE] = 56,  [TREE_DATA] = 8,           [TREE_WHOLE] = 16,
    [TREE_LINK] = 56,  [TREE_PART] = 40,          [TREE_END] = 24,
    [TREE_TARGET] = 16,
};

static uint8_t *put32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        *at++ = (uint8_t)(value >> 8 * i);
    return at;
}

static uint8_t *put64(uint8_t *at, uint64_t value)
{
    return put32(put32(at, (uint32_t)value), (uint32_t)(value >> 32));
}

static uint32_t get32(const uint8_t **at)
{
    uint32_t value = 0;
    for (int i = 0; i < 4; i++)
        value |= (uint32_t)*(*at)++ << 8 * i;
    return value;
}

static uint64_t get64(const uint8_t **at)
{
    uint64_t low = get32(at);
    return low | (uint64_t)get32(at) << 32;
}

static uint8_t *put_attributes(uint8_t *at, const struct tree_attributes *from)
{
    at = put32(put32(at, from->mode), from->uid);
    at = put64(put32(put32(at, from->gid), from->device), from->inode);
    return put64(put64(at, (uint64_t)from->mtime_ns), (uint64_t)from->atime_ns);
}

static void get_attributes(const uint8_t **at, struct tree_attributes *into)
{
    into->mode = get32(at);
    into->uid = get32(at);
    into->gid = get32(at);
    into->device = get32(at);
    into->inode = get64(at);
    into->mtime_ns = (int64_t)get64(at);
    into->atime_ns = (int64_t)get64(at);
}

static bool has_name(enum tree_kind kind)
{
    return kind == TREE_ENTER || kind == TREE_FILE || kind == TREE_LINK ||
           kind == TREE_TARGET;
}

static uint8_t *put_fixed(uint8_t *at, const struct tree_record *record)
{
    switch (record->kind) {
    case TREE_START:
        return put32(at, record->length);
    case TREE_ENTER:
        return put_attributes(at, &record->attributes);
    case TREE_FILE:
        at = put64(put_attributes(at, &record->attributes), record->size);
        return put64(at, record->from);
    case TREE_DATA:
        return put64(at, record->offset);
    case TREE_WHOLE:
        return put64(put32(put32(at, record->length), 0), record->sum);
    case TREE_LINK:
        at = put32(put_attributes(at, &record->attributes), (uint32_t)record->device);
        return put32(put64(at, record->inode), (uint32_t)strlen(record->target));
    case TREE_PART:
        at = put64(put64(at, record->size), record->inode);
        at = put64(put64(at, (uint64_t)record->attributes.mtime_ns), record->from);
        return put64(at, record->sum);
    case TREE_END:
        return put64(put64(put64(at, record->errors), record->files), record->bytes);
    case TREE_TARGET:
        return put64(put64(at, record->device), record->inode);
    default:
        return at;
    }
}

int tree_put(struct bytes *into, const struct tree_record *record)
{
    uint8_t head[TREE_HEADER + 64];
    bool part = record->kind == TREE_PART;
    const char *name = part ? record->path : record->name;
    size_t name_length = part || has_name(record->kind) ? strlen(name) : 0;
    size_t target = record->kind == TREE_LINK ? strlen(record->target) : 0;
    size_t data = record->kind == TREE_DATA ? record->length : 0;
    size_t boot_id = record->kind == TREE_START ? strlen(record->name) : 0;
    uint8_t *end = put_fixed(head + TREE_HEADER, record);
    size_t body = (size_t)(end - head) - TREE_HEADER + target + data + boot_id + name_length;
    head[0] = (uint8_t)record->kind;
    head[1] = 0;
    head[2] = (uint8_t)name_length;
    head[3] = (uint8_t)(name_length >> 8);
    put32(head + 4, (uint32_t)body);
    if (bytes_reserve(into, TREE_HEADER + body) < 0)
        return -1;
    bytes_add(into, head, (size_t)(end - head));
    bytes_add(into, record->target, target);
    bytes_add(into, record->data, data);
    bytes_add(into, record->name, boot_id);
    return bytes_add(into, name, name_length);
}

static void get_fixed(struct tree_record *record, const uint8_t *at)
{
    if (record->kind == TREE_ENTER || record->kind == TREE_FILE ||
        record->kind == TREE_LINK)
        get_attributes(&at, &record->attributes);
    switch (record->kind) {
    case TREE_START:
        record->length = get32(&at);
        break;
    case TREE_LINK:
        record->device = get32(&at);
        record->inode = get64(&at);
        record->length = get32(&at);
        break;
    case TREE_FILE:
        record->size = get64(&at);
        record->from = get64(&at);
        break;
    case TREE_DATA:
        record->offset = get64(&at);
        record->data = at;
        break;
    case TREE_WHOLE:
        record->length = get32(&at);
        get32(&at);
        record->sum = get64(&at);
        break;
    case TREE_PART:
        record->size = get64(&at);
        record->inode = get64(&at);
        record->attributes.mtime_ns = (int64_t)get64(&at);
        record->from = get64(&at);
        record->sum = get64(&at);
        break;
    case TREE_END:
        record->errors = get64(&at);
        record->files = get64(&at);
        record->bytes = get64(&at);
        break;
    case TREE_TARGET:
        record->device = get64(&at);
        record->inode = get64(&at);
        break;
    default:
        break;
    }
}

bool tree_is_name(const char *name, size_t length)
{
    return length > 0 && length <= TREE_NAME_MOST && !memchr(name, '/', length) &&
           !memchr(name, 0, length) && !(length == 1 && name[0] == '.') &&
           !(length == 2 && name[0] == '.' && name[1] == '.');
}

/* What lies between the fixed part and the name, and the name. */
static const char *get_rest(struct tree_record *record, const uint8_t *rest,
                            size_t length, size_t name_length)
{
    const char *name = (const char *)rest + length;
    if (record->kind == TREE_DATA) {
        record->length = (uint32_t)length;
        if (length == 0 || length > TREE_DATA_MOST)
            return "data of a wrong length";
        if (record->offset > (uint64_t)INT64_MAX - length)
            return "data beyond what a file can have";
    } else if (record->kind == TREE_LINK) {
        if (record->length != length || length == 0 || length >= sizeof record->target ||
            memchr(rest, 0, length))
            return "a symbolic link without a target";
        memcpy(record->target, rest, length);
        record->target[length] = '\0';
    } else if (record->kind == TREE_START) {
        size_t known = tree_is_name((const char *)rest, length) ? length : 0;
        memcpy(record->name, rest, known);
        record->name[known] = '\0';
    } else if (length) {
        return "a record of a wrong length";
    }
    if (record->kind == TREE_PART) {
        record->path = (char *)(uintptr_t)name;
        record->length = (uint32_t)name_length;
        return name_length && !memchr(name, 0, name_length) ? NULL : "a part of no file";
    }
    if (!has_name(record->kind))
        return name_length ? "a name where none belongs" : NULL;
    bool top = record->kind == TREE_ENTER && name_length == 0;
    if (!top && !tree_is_name(name, name_length))
        return "a name that leads elsewhere";
    memcpy(record->name, name, name_length);
    record->name[name_length] = '\0';
    return NULL;
}

long tree_get(struct tree_record *record, const uint8_t *bytes, size_t length,
              const char **why)
{
    if (length < TREE_HEADER)
        return 0;
    const uint8_t *at = bytes + 4;
    size_t name_length = (size_t)(bytes[2] | bytes[3] << 8);
    size_t body = get32(&at);
    *why = "a record of no known kind";
    if (bytes[0] < TREE_START || bytes[0] > TREE_TARGET || bytes[1])
        return -1;
    record->kind = bytes[0];
    *why = "a record of a wrong length";
    if (body > TREE_BODY_MOST || fixed[record->kind] + name_length > body)
        return -1;
    if (length < TREE_HEADER + body)
        return 0;
    get_fixed(record, at);
    const char *wrong = get_rest(record, at + fixed[record->kind],
                                 body - fixed[record->kind] - name_length, name_length);
    if (wrong) {
        *why = wrong;
        return -1;
    }
    return (long)(TREE_HEADER + body);
}
