# Workspace: mail, calendar and drive. Whom a thing reaches is typed, or looked up by a name that was typed.

reading(/get_unread_emails).
reading(/get_sent_emails).
reading(/get_received_emails).
reading(/get_draft_emails).
reading(/search_emails).
reading(/search_contacts_by_name).
reading(/search_contacts_by_email).
reading(/get_current_day).
reading(/search_calendar_events).
reading(/get_day_calendar_events).
reading(/search_files_by_filename).
reading(/get_file_by_id).
reading(/list_files).
reading(/search_files).

means("create", /create_calendar_event).
means("schedule", /create_calendar_event).
means("add", /create_calendar_event).
means("plan", /create_calendar_event).
means("invite", /create_calendar_event).
means("reschedule", /reschedule_calendar_event).
means("move", /reschedule_calendar_event).
means("postpone", /reschedule_calendar_event).
means("cancel", /cancel_calendar_event).
means("add", /add_calendar_event_participants).
means("invite", /add_calendar_event_participants).

means("send", /send_email).
means("forward", /send_email).
means("reply", /send_email).
means("respond", /send_email).
means("write", /send_email).
means("delete", /delete_email).
means("remove", /delete_email).

means("create", /create_file).
means("make", /create_file).
means("save", /create_file).
means("write", /create_file).
means("append", /append_to_file).
means("add", /append_to_file).
means("update", /append_to_file).
means("share", /share_file).
means("delete", /delete_file).
means("remove", /delete_file).

guarded(/send_email, /recipients).
guarded(/send_email, /cc).
guarded(/send_email, /bcc).
guarded(/create_calendar_event, /participants).
guarded(/create_calendar_event, /title).
guarded(/add_calendar_event_participants, /participants).
guarded(/add_calendar_event_participants, /event_id).
guarded(/reschedule_calendar_event, /event_id).
guarded(/cancel_calendar_event, /event_id).
guarded(/delete_email, /email_id).
guarded(/create_file, /filename).
guarded(/append_to_file, /file_id).
guarded(/share_file, /email).
guarded(/share_file, /file_id).
guarded(/delete_file, /file_id).

vouched(Action, /title, Value) :- tool(Action, /create_calendar_event), composed(Action, /title, Value).
vouched(Action, /filename, Value) :- tool(Action, /create_file), composed(Action, /filename, Value).

# People: from the address book by a typed name, from mail and events that the user's words chose.
Decl reaching(Tool, Name) bound [/name, /name].
reaching(/send_email, /recipients).
reaching(/send_email, /cc).
reaching(/create_calendar_event, /participants).
reaching(/add_calendar_event_participants, /participants).
reaching(/share_file, /email).
named_flows(/search_contacts_by_name, "email", Tool, Name) :- reaching(Tool, Name).
named_flows(/search_emails, "sender", Tool, Name) :- reaching(Tool, Name).
named_flows(/search_calendar_events, "participants", Tool, Name) :- reaching(Tool, Name).
flows(/get_day_calendar_events, "participants", /send_email, /recipients).

# Things: the ids that the drive, the mailbox and the calendar gave.
Decl drive(Tool) bound [/name].
drive(/list_files).
drive(/search_files).
drive(/search_files_by_filename).
drive(/get_file_by_id).
drive(/create_file).
flows(From, "id_", /append_to_file, /file_id) :- drive(From).
flows(From, "id_", /share_file, /file_id) :- drive(From).
flows(From, "id_", /delete_file, /file_id) :- drive(From).
Decl mailbox(Tool) bound [/name].
mailbox(/search_emails).
mailbox(/get_unread_emails).
mailbox(/get_received_emails).
mailbox(/get_sent_emails).
flows(From, "id_", /delete_email, /email_id) :- mailbox(From).
Decl calendar(Tool) bound [/name].
calendar(/search_calendar_events).
calendar(/get_day_calendar_events).
flows(From, "id_", /cancel_calendar_event, /event_id) :- calendar(From).
flows(From, "id_", /reschedule_calendar_event, /event_id) :- calendar(From).
flows(From, "id_", /add_calendar_event_participants, /event_id) :- calendar(From).

speaking(/send_email, /body).
