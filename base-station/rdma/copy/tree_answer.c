/* Answers of a sink to a file, up to the final one: see tree_sink.h. */
#include <stdlib.h>

#include "descriptors.h"
#include "tree_part.h"
#include "tree_sink.h"

/*
 * Limit on files with a queued answer. A higher limit could stall the source; a lower one wakes all
 * processes of the sessions more often.
 */
enum { DUE_MOST = 4096 };

void tree_file_answers(struct sink *sink)
{
    if (sink->run.count)
        tree_write(&sink->line, &sink->run);
    sink->run.count = 0;
}

void tree_file_answer(struct sink *sink, const struct tree_file *file,
                      enum tree_verdict verdict, uint64_t from)
{
    struct tree_record *run = &sink->run;
    if (!run->count || run->verdict != verdict || from || run->from ||
        run->number + run->count != file->number) {
        tree_file_answers(sink);
        run->kind = TREE_ANSWER;
        run->number = file->number;
        run->verdict = verdict;
        run->from = from;
    }
    run->count++;
    if (++sink->due < DUE_MOST)
        return;
    sink->due = 0;
    tree_file_answers(sink);
    tree_flush(&sink->line);
}

void tree_file_settle(struct sink *sink, struct tree_file *file, enum tree_verdict verdict,
                      const struct stat *state)
{
    tree_file_answer(sink, file, verdict, 0);
    if (state)
        tree_made_add(&sink->made, state);
    sink->files[file->number % TREE_WINDOW] = NULL;
    tree_folder_leave(sink, file->folder);
    shut(&file->fd);
    bytes_close(&file->content);
    free(file);
}

void tree_file_give_up(struct sink *sink, struct tree_file *file, const char *why)
{
    if (why)
        tree_sink_complain(sink, file->folder, file->name, why);
    if (file->fd >= 0)
        part_drop(file->folder->fd, file->name);
    shut(&file->fd);
    file->state = FILE_NOWHERE;
}

void tree_file_refuse(struct sink *sink, struct tree_file *file, const char *why)
{
    tree_file_give_up(sink, file, why);
    tree_file_settle(sink, file, TREE_REFUSED, NULL);
}
