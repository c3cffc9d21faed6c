"""Programs that compile in processes which they start, each in its own way. They are run as scripts."""
