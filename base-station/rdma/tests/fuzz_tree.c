/*
 * libFuzzer: input of rdcp's sink, input of an agent, and an agent's output as read by rdpipe. Names
 * must never lead outside the tree.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "bytes.h"
#include "agent_protocol.h"
#include "pipe_end.h"
#include "tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put_sum(uint8_t *at, const uint8_t *bytes, size_t length)
{
    uint32_t sum = (uint32_t)XXH64(bytes, length, TREE_VERSION);
    memcpy(at, &sum, sizeof sum); /* the fuzzer runs on little-endian machines */
}

/* Read records after fixing their checksums, which a fuzzer cannot guess. */
static void read_sound(const uint8_t *data, size_t size)
{
    struct tree_record record = {0};
    const char *why = "";
    uint8_t *copy = malloc(size);
    uint32_t bytes;
    uint16_t name;
    for (size_t at = 0; copy && size - at >= TREE_HEAD; at += TREE_HEAD + bytes + name) {
        uint8_t *head = copy + at;
        size_t room = size - at - TREE_HEAD;
        memcpy(head, data + at, size - at);
        memcpy(&name, head + 2, sizeof name);
        memcpy(&bytes, head + 4, sizeof bytes);
        name %= (uint16_t)(room < 300 ? room + 1 : 300);
        bytes %= (uint32_t)(room - name + 1);
        memcpy(head + 2, &name, sizeof name);
        memcpy(head + 4, &bytes, sizeof bytes);
        size_t whole = (size_t)TREE_HEAD + bytes + name;
        size_t summed = head[0] == TREE_DATA && !head[1] ? TREE_HEAD : whole;
        put_sum(head + 8, head + TREE_SUMMED, summed - TREE_SUMMED);
        put_sum(head + 12, head, 12);
        long length = tree_get(&record, head, size - at, &why);
        if (length > 0 && ((size_t)length != whole || strchr(record.name, '/') ||
                           strcmp(record.name, "..") == 0 || record.length != bytes))
            abort();
    }
    free(copy);
}

static void read_tree(const uint8_t *data, size_t size)
{
    struct tree_record record = {0};
    const char *why = "";
    long length;
    for (size_t at = 0; at < size; at += (size_t)length) {
        length = tree_get(&record, data + at, size - at, &why);
        if (length <= 0)
            return;
        if ((size_t)length > size - at || strchr(record.name, '/') ||
            strcmp(record.name, "..") == 0)
            abort();
    }
}

static void read_frames(const uint8_t *data, size_t size)
{
    struct agent_work work = {0};
    struct bytes input = {0};
    struct words words;
    struct agent_frame frame;
    bytes_add(&input, data, size);
    while (agent_frame_next(&input, &frame) > 0) {
        if (agent_work_take(&work, &frame) == 0) {
            agent_work_open(&words, &work);
            words_close(&words);
        }
        if (agent_frame_number(&frame, AGENT_FLOW_BYTES) > AGENT_FLOW_BYTES)
            abort();
        agent_frame_drop(&input, &frame);
    }
    agent_work_close(&work);
    bytes_close(&input);
}

/* A field becomes part of a command line: it must never begin with "-". */
static void read_agent(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"port", "transports", "addresses"};
    struct end_status status = {.status = -1};
    struct pipe_end end = {.control_fd = -1, .answer_fd = -1, .status = &status};
    struct agent_frame frame;
    int ends[2];
    if (pipe(ends) < 0 || write(ends[1], data, size) != (ssize_t)size)
        abort();
    close(ends[1]);
    end.answer_fd = ends[0];
    while (!end.done) {
        pipe_end_read(&end, 0);
        for (; pipe_end_next(&end, &frame); agent_frame_drop(&end.answers, &frame))
            for (size_t i = 0; frame.verb == AGENT_ANNOUNCE && i < 3; i++) {
                char *field = agent_field(frame.length ? frame.body : "", names[i]);
                if (field && (!*field || *field == '-' || strchr(field, ' ')))
                    abort();
                free(field);
            }
    }
    free(end.note);
    pipe_end_close(&end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_tree(data, size);
    read_sound(data, size);
    read_frames(data, size);
    read_agent(data, size);
    return 0;
}
