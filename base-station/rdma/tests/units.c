/*
 * Unit tests of the pure parts: records, proofs and seals against the golden vectors (argv[1]), the
 * handshake of two peers, command lines.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "connect.h"
#include "handshake.h"
#include "options.h"
#include "records.h"

static size_t unhex(const char *digits, uint8_t *into, size_t room)
{
    size_t length = strlen(digits) / 2;
    for (size_t i = 0; i < length && i < room; i++)
        sscanf(digits + 2 * i, "%2hhx", &into[i]);
    return length;
}

static void check_record(char **word)
{
    uint8_t expected[RECORD_BYTES], made[RECORD_BYTES];
    struct record record = {(uint8_t)atoi(word[0]), (uint32_t)atoi(word[1]),
                            strtoull(word[2], NULL, 10)}, again;
    unhex(word[3], expected, sizeof expected);
    record_put(made, &record);
    CHECK(memcmp(made, expected, sizeof made) == 0, "record %s", word[3]);
    const char *why = record_get(&again, expected, CHUNK_MOST + SEAL_BYTES);
    CHECK(!why, "record %s: %s", word[3], why);
    CHECK(!why && again.type == record.type && again.length == record.length &&
              again.number == record.number,
          "record %s read again", word[3]);
}

static void check_hello(char **word)
{
    uint8_t expected[WHOLE_HELLO_BYTES], made[HELLO_BYTES];
    struct hello hello = {
        .version = (uint16_t)atoi(word[0]),
        .role = (uint8_t)atoi(word[1]),
        .transport = (uint8_t)atoi(word[2]),
        .protection = (uint8_t)atoi(word[3]),
        .checksum = (uint8_t)atoi(word[4]),
        .aes = (uint8_t)atoi(word[5]),
        .chunk = (uint32_t)atoi(word[6]),
        .credits = (uint32_t)atoi(word[7]),
    }, again;
    unhex(word[8], hello.public, PUBLIC_BYTES);
    unhex(word[9], expected, sizeof expected);
    hello_put(made, &hello);
    CHECK(memcmp(made, expected + RECORD_BYTES, sizeof made) == 0, "hello %s", word[9]);
    const char *why = hello_get(&again, expected + RECORD_BYTES);
    CHECK(!why, "hello %s: %s", word[9], why);
    CHECK(again.version == hello.version && again.chunk == hello.chunk &&
              again.credits == hello.credits && again.role == hello.role &&
              memcmp(again.public, hello.public, PUBLIC_BYTES) == 0,
          "hello %s read again", word[9]);
    for (int at = 2; at < 16 && hello.version == RECORDS_VERSION; at++) {
        uint8_t wrong[HELLO_BYTES];
        memcpy(wrong, made, sizeof wrong);
        memset(wrong + (at < 7 ? at : at < 12 ? 8 : 12), 0xff, at < 7 ? 1 : 4);
        CHECK(hello_get(&again, wrong), "hello with byte %d wrong is taken", at);
    }
}

static void check_ending(char **word)
{
    uint8_t expected[END_BYTES], made[END_BYTES];
    struct ending ending = {strtoull(word[0], NULL, 10), strtoull(word[1], NULL, 10)};
    struct ending again;
    unhex(word[2], expected, sizeof expected);
    ending_put(made, &ending);
    ending_get(&again, expected);
    CHECK(memcmp(made, expected, sizeof made) == 0, "ending %s", word[2]);
    CHECK(again.total == ending.total && again.value == ending.value, "ending again");
}

static void check_exchange(char **word)
{
    uint8_t secret[SECRET_BYTES], theirs[PUBLIC_BYTES], expected[SECRET_BYTES];
    unhex(word[0], secret, sizeof secret);
    unhex(word[1], theirs, sizeof theirs);
    unhex(word[2], expected, sizeof expected);
    CHECK(handshake_exchange(secret, theirs) == 0, "no exchange");
    CHECK(memcmp(secret, expected, sizeof secret) == 0, "exchange with %s", word[1]);
}

/* Read KEY SHARED SENDER'S-HELLO RECEIVER'S-HELLO. */
static void open_handshake(char **word, struct key *key, struct handshake *handshake, int role)
{
    *handshake = (struct handshake){.key = key, .role = role};
    key->length = unhex(word[0], key->bytes, sizeof key->bytes);
    unhex(word[1], handshake->secret, SECRET_BYTES);
    unhex(word[2], handshake->transcript.sender, WHOLE_HELLO_BYTES);
    unhex(word[3], handshake->transcript.receiver, WHOLE_HELLO_BYTES);
    hello_get(&handshake->mine, handshake->transcript.sender + RECORD_BYTES);
    hello_get(&handshake->theirs, handshake->transcript.receiver + RECORD_BYTES);
}

static bool takes_proof(struct handshake handshake, const uint8_t proof[PROOF_BYTES])
{
    struct error error = {0};
    handshake.stage = HANDSHAKE_PROOF;
    return handshake_take(&handshake, &(struct record){RECORD_PROOF, PROOF_BYTES, 0}, proof,
                          &error) == 0;
}

static void check_secret(char **word)
{
    static struct key key;
    struct handshake handshake;
    uint8_t expected[SECRET_BYTES], made[SECRET_BYTES];
    int role = atoi(word[5]);
    open_handshake(word, &key, &handshake, 3 - role);
    unhex(word[6], expected, sizeof expected);
    CHECK(handshake_derive(made, &handshake, word[4], role) == 0, "no secret");
    CHECK(memcmp(made, expected, sizeof made) == 0, "%s of role %d", word[4], role);
    if (strcmp(word[4], "proof") != 0)
        return;
    CHECK(takes_proof(handshake, expected), "proof of role %d is refused", role);
    for (int bit = 0; bit < 8 * PROOF_BYTES; bit++) {
        expected[bit / 8] ^= (uint8_t)(1 << bit % 8);
        CHECK(!takes_proof(handshake, expected), "bit %d is not seen", bit);
        expected[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    handshake.role = role;
    CHECK(!takes_proof(handshake, expected), "its own proof is taken");
}

static void check_sealed(char **word)
{
    static struct key key;
    struct handshake handshake;
    struct seals from, to;
    struct error error = {0};
    struct record record;
    uint8_t sealed[512], work[512] = {0}, text[400];
    int role = atoi(word[4]);
    uint64_t counter = strtoull(word[5], NULL, 10);
    size_t plain = unhex(word[6], text, sizeof text);
    size_t whole = unhex(word[7], sealed, sizeof sealed);
    open_handshake(word, &key, &handshake, role);
    CHECK(seals_open(&from, &handshake, &error) == 0, "no seals");
    handshake.role = 3 - role;
    CHECK(seals_open(&to, &handshake, &error) == 0, "no seals");
    CHECK(!record_get(&record, sealed, CHUNK_MOST + SEAL_BYTES) &&
              whole == RECORD_BYTES + plain + SEAL_BYTES, "%s", word[7]);
    bool data = record.type == RECORD_DATA;
    struct seal *close = data ? &from.data : &from.say;
    struct seal *open = data ? &to.data : &to.hear;
    counter = data ? record.number : counter;
    memcpy(work, sealed, RECORD_BYTES);
    memcpy(work + RECORD_BYTES, text, plain);
    CHECK(seal_close_record(close, work, counter) == 0, "cannot seal");
    CHECK(memcmp(work, sealed, whole) == 0, "sealed %s", word[7]);
    CHECK(seal_open_record(open, work, counter) == 0, "cannot unseal");
    CHECK(memcmp(work + RECORD_BYTES, text, plain) == 0, "unsealed %s", word[7]);
    memcpy(work, sealed, whole);
    CHECK(seal_open_record(open, work, counter + 1) < 0, "one left out is not seen");
    for (size_t at = 8; at < whole; at++) { /* its number, its body, its tag */
        memcpy(work, sealed, whole);
        work[at] ^= 0x10;
        CHECK(seal_open_record(open, work, counter) < 0, "byte %zu changed unseen", at);
    }
    seals_close(&from);
    seals_close(&to);
    seals_close(&to);
}

static void check_refused(char **word)
{
    uint8_t header[RECORD_BYTES];
    struct record record;
    unhex(word[1], header, sizeof header);
    CHECK(record_get(&record, header, (uint32_t)atoi(word[0])), "%s is taken", word[1]);
}

static void check_vectors(const char *path)
{
    static const struct { const char *name; int words; void (*check)(char **); } kinds[] = {
        {"record", 4, check_record}, {"hello", 10, check_hello},
        {"ending", 3, check_ending}, {"exchange", 3, check_exchange},
        {"secret", 7, check_secret}, {"sealed", 8, check_sealed},
        {"refused", 2, check_refused},
    };
    char line[4096];
    FILE *file = fopen(path, "r");
    CHECK(file, "cannot open %s", path);
    while (file && fgets(line, sizeof line, file)) {
        char *word[12], *rest = line;
        int count = 0;
        line[strcspn(line, "\n")] = '\0';
        while (count < 12 && (word[count] = strsep(&rest, " ")))
            count++;
        if (line[0] == '#' || !*word[0])
            continue;
        bool known = false;
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            if (strcmp(word[0], kinds[i].name) == 0 && count == kinds[i].words + 1) {
                kinds[i].check(word + 1);
                known = true;
            }
        CHECK(known, "a line of vectors that nobody checks: %s", word[0]);
    }
    if (file)
        fclose(file);
}

struct side {
    struct key key;
    struct handshake handshake;
    struct error error;
};

static void side_open(struct side *side, int role, const char *key, int protection,
                      int version)
{
    memset(side, 0, sizeof *side);
    side->key.length = strlen(key);
    memcpy(side->key.bytes, key, side->key.length);
    struct hello hello = {(uint16_t)version, (uint8_t)role, TRANSPORT_TCP,
                          (uint8_t)protection, CHECKSUM_XXH3, 1, 65536, 8, {0}};
    CHECK(handshake_open(&side->handshake, &side->key, &hello, &side->error) == 0,
          "no handshake");
}

/* Exchange messages between the two sides until both are silent. */
static void talk(struct side *from, struct side *to)
{
    while (from->handshake.answers) {
        struct record record;
        const uint8_t *said = from->handshake.answer;
        from->handshake.answers = false;
        const char *why = record_get(&record, said, 0);
        CHECK(!why, "said what cannot be read: %s", why);
        if (why)
            return;
        handshake_take(&to->handshake, &record, said + RECORD_BYTES, &to->error);
        struct side *other = from;
        from = to;
        to = other;
    }
}

/* Run a handshake. Return whether both ends encrypt; -1 if one of them fails. */
static int authenticate(const char *key, const char *other_key, int protection,
                int other_protection, int version, struct error why[2])
{
    static struct side sender, receiver;
    side_open(&sender, ROLE_SENDER, key, protection, version);
    side_open(&receiver, ROLE_RECEIVER, other_key, other_protection, RECORDS_VERSION);
    talk(&sender, &receiver);
    why[0] = sender.error;
    why[1] = receiver.error;
    bool over = sender.handshake.stage == HANDSHAKE_OVER &&
                receiver.handshake.stage == HANDSHAKE_OVER && !why[0].status && !why[1].status;
    bool agreed = handshake_encrypts(&sender.handshake);
    return over && agreed == handshake_encrypts(&receiver.handshake) ? agreed : -1;
}

static void check_handshakes(void)
{
    static struct side alone;
    struct error why[2];
    const char *key = "0123456789abcdef";
    const int ours = RECORDS_VERSION;
    for (int mine = PROTECT_NOT; mine <= PROTECT_ENCRYPT; mine++)
        for (int theirs = PROTECT_NOT; theirs <= PROTECT_ENCRYPT; theirs++)
            CHECK(authenticate(key, key, mine, theirs, ours, why) == (mine || theirs),
                  "friends do not meet: %s", why[0].text);
    CHECK(authenticate(key, "0123456789abcdeF", 0, 0, ours, why) < 0, "another key is taken");
    CHECK(strstr(why[0].text, "same key"), "sender's advice: %s", why[0].text);
    CHECK(authenticate(key, key, 0, 0, ours - 1, why) < 0, "another version is taken");
    for (int end = 0; end < 2; end++)
        CHECK(strstr(why[end].text, "sender speaks version 3 of the protocol, the receiver version "
                     "4: install the same release"), "advice: %s", why[end].text);

    side_open(&alone, ROLE_SENDER, key, 0, ours); /* a peer that reflects our own hello */
    struct record record;
    CHECK(!record_get(&record, alone.handshake.answer, 0), "no hello");
    uint8_t hello[CONTROL_BYTES];
    memcpy(hello, alone.handshake.answer, sizeof hello);
    CHECK(handshake_take(&alone.handshake, &record, hello + RECORD_BYTES,
                       &alone.error) < 0, "a reflected hello is taken");
    for (int version = ours; version <= ours + 1; version++) { /* a longer hello: another version */
        struct side other;
        uint8_t body[CONTROL_BYTES] = {0};
        side_open(&other, ROLE_RECEIVER, key, 0, version);
        memcpy(body, other.handshake.answer + RECORD_BYTES, HELLO_BYTES);
        side_open(&alone, ROLE_SENDER, key, 0, ours);
        record = (struct record){RECORD_HELLO, HELLO_BYTES + 8, 0};
        CHECK(handshake_take(&alone.handshake, &record, body, &alone.error) < 0, "a longer hello is taken");
        CHECK(!strstr(alone.error.text, "receiver version 5") == (version == ours),
              "a longer hello: %s", alone.error.text);
    }
    for (int order = 0; order < 2; order++) { /* public keys 0 and 1: the exchange gives zero */
        struct side other;
        uint8_t body[CONTROL_BYTES];
        side_open(&other, ROLE_RECEIVER, key, 0, ours);
        memcpy(body, other.handshake.transcript.receiver + RECORD_BYTES, HELLO_BYTES);
        memset(body + HELLO_BYTES - PUBLIC_BYTES, 0, PUBLIC_BYTES);
        body[HELLO_BYTES - PUBLIC_BYTES] = (uint8_t)order;
        side_open(&alone, ROLE_SENDER, key, 0, ours);
        record = (struct record){RECORD_HELLO, HELLO_BYTES, 0};
        CHECK(handshake_take(&alone.handshake, &record, body, &alone.error) < 0 &&
              strstr(alone.error.text, "X25519"), "a key of small order is taken");
    }
    side_open(&alone, ROLE_RECEIVER, key, 0, ours); /* a proof before the hello */
    record = (struct record){RECORD_PROOF, PROOF_BYTES, 0};
    CHECK(handshake_take(&alone.handshake, &record, hello, &alone.error) < 0, "a proof without a hello is taken");
}

static void check_bytes(void)
{
    static const struct { const char *text; int64_t bytes; } rows[] = {
        {"0", 0}, {"1", 1}, {"1K", 1024}, {"1.5k", 1536}, {"2M", 2 << 20},
        {"1G", 1 << 30}, {"1T", INT64_C(1) << 40}, {"", -1}, {"x", -1}, {"-1", -1},
        {"1KB", -1}, {"1 K", -1}, {"1 ", -1}, {"nan", -1}, {"inf", -1}, {"1e30", -1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK(options_bytes(rows[i].text) == rows[i].bytes, "%s gives %lld",
              rows[i].text, (long long)options_bytes(rows[i].text));
}

static void check_options(void)
{
    struct options options;
    char *good[] = {"rdsend", "-v", "--rate", "1M", "host", "7", "--", "a", "-b", NULL};
    char *bad[][6] = {
        {"rdsend", NULL},           {"rdsend", "host", NULL},
        {"rdsend", "host", "x"},    {"rdsend", "host", "0", NULL},
        {"rdsend", "host", "65536"}, {"rdsend", "host", "7", "--", NULL},
        {"rdsend", "h", "7", "a", "b"}, {"rdsend", "--wrong", "h", "7"},
        {"rdsend", "--rate", NULL}, {"rdsend", "--timeout", "-1", "h", "7"},
        {"rdsend", "--sync", "h", "7"}, {"rdsend", "--chunk", "1", "h", "7"},
        {"rdsend", "--transport", "udp", "h", "7"}, {"rdsend", "h", " 7", NULL},
        {"rdsend", "--timeout", "1", "h", "7"}, {"rdsend", "--credits", "2.5", "h", "7"},
        {"rdsend", "--key-fd", "1K", "h", "7"}, {"rdsend", "-qv", "h", "7"},
    };
    struct error why = {0};
    CHECK(options_read(&options, true, 9, good, &why) == 0, "%s", why.text);
    CHECK(options.rate == 1 << 20 && options.command == good + 7 && options.verbose &&
              strcmp(options.host, "host") == 0, "options misread");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int count = 0;
        while (count < 5 && bad[i][count])
            count++;
        why = (struct error){0};
        CHECK(options_read(&options, true, count, bad[i], &why) < 0 &&
                  why.status == EXIT_USAGE && why.text[0],
              "command line %zu is taken", i);
    }
}

/* Reject sizes that a 32-bit machine cannot count. */
static void check_ring(void)
{
    struct ring ring;
    bool opened = ring_open(&ring, CREDITS_MOST, 0, CHUNK_MOST) == 0;
    CHECK(!opened || ring.slot_bytes * ring.count / ring.count == ring.slot_bytes,
          "%u buffers of %u bytes are too few bytes", ring.count, ring.chunk);
    CHECK(!opened || sizeof(size_t) > 4, "16 GiB in 32 bits");
    ring_close(&ring);
}

static void check_pinned(void)
{
    static const uint32_t limits_kib[] = {16, 64, 512, 2048, 8192, 64 << 10};
    for (size_t i = 0; i < sizeof limits_kib / sizeof *limits_kib; i++)
        for (int role = ROLE_SENDER; role <= ROLE_RECEIVER; role++) {
            struct hello hello = {.role = (uint8_t)role, .chunk = 1 << 20, .credits = 16};
            uint64_t limit = (uint64_t)limits_kib[i] << 10;
            bool fitted = pinned_need(&hello) <= limit;
            int changed = pinned_fit(&hello, limit);
            CHECK(fitted == (limits_kib[i] == 64 << 10), "limit %u", limits_kib[i]);
            CHECK(changed == (fitted ? 0 : limits_kib[i] == 16 ? -1 : 1), "limit %u: %d",
                  limits_kib[i], changed);
            CHECK(hello.chunk >= CHUNK_LEAST && hello.credits >= 1, "nothing is left");
            CHECK((pinned_need(&hello) <= limit) == (changed >= 0), "%u KiB: %u x %u",
                  limits_kib[i], hello.credits, hello.chunk);
        }
    struct hello most = {.role = ROLE_RECEIVER, .chunk = 1 << 20, .credits = 16};
    CHECK(pinned_need(&most) <= 64 << 20, "more is pinned by default than should be");
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s VECTORS\n", argv[0]);
        return 2;
    }
    check_vectors(argv[1]);
    check_handshakes();
    check_bytes();
    check_options();
    check_ring();
    check_pinned();
    printf("%d checks, %d failed\n", checks, failures);
    return failures != 0;
}
