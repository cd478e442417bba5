/* Words of a text by how often they come: a table with open addressing. */
int size = 1024, used = 0;
char words[1024];
int counts[1024], starts[1024], lengths[1024];
double load = 0.75, primes[4] = {3.0, 5e0, 7.25, 11};

int hash(char text[], int from, int length) {
    int value = 5381;
    for (int i = 0; i < length; i++) {
        value = (value * 33 + text[from + i]) % 65521;
        if (value < 0) {
            value += 65521;
        }
    }
    return value % size;
}

int same(char left[], int a, char right[], int b, int length) {
    for (int i = 0; i < length; i += 1) {
        if (left[a + i] != right[b + i]) { return 0; }
    }
    return 1;
}

// Where a word stands, or the free place where it may go.
int find(char text[], int from, int length) {
    int place = hash(text, from, length);
    while (counts[place] > 0) {
        if (lengths[place] == length && same(words, starts[place], text, from, length)) {
            return place;
        } else if (place == size - 1) {
            place = 0;
        } else {
            place++;
        }
    }
    return place;
}

void add(char text[], int from, int length) {
    int place = find(text, from, length);
    if (!counts[place]) {
        starts[place] = used;
        lengths[place] = length;
        for (int i = 0; i < length; i++) {
            words[used] = text[from + i];
            used += 1;
        }
    }
    counts[place]++;
}

int letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-';
}

void read(char text[]) {
    int from = 0, at = 0;
    while (text[at] != 0) {
        if (letter(text[at])) {
            at++;
            continue;
        }
        if (at > from) { add(text, from, at - from); }
        at++;
        from = at;
    }
}

/* Sorts places by their counts, the largest first. */
void sort(int places[], int first, int last) {
    if (first >= last) { return; }
    int pivot = counts[places[first + (last - first) / 2]], low = first, high = last;
    while (low <= high) {
        while (counts[places[low]] > pivot) { low++; }
        while (counts[places[high]] < pivot) { high--; }
        if (low <= high) {
            int other = places[low];
            places[low] = places[high];
            places[high] = other;
            low++;
            high--;
        }
    }
    sort(places, first, high);
    sort(places, low, last);
}

int main(void) {
    int places[1024], total = 0;
    read("the quick brown fox jumps over the lazy dog, and the dog sleeps on\n");
    for (int i = 0; i < size; i++) {
        if (counts[i] == 0) { continue; }
        places[total] = i;
        total++;
    }
    sort(places, 0, total - 1);
    for (int rank = 0; rank < total && rank < 0x10; rank++) {
        int place = places[rank];
        printf("%4d  %.2f%%\t", counts[place], 100.0 * counts[place] / total);
        print(words, starts[place], lengths[place]);
    }
    return load * size > total;
}
